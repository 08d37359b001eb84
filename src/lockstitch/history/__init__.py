"""Pure functions and folds over a history: assembling, projecting, recovering, compacting."""
