"""Whether a text shows anything."""


def is_visible(text: str) -> bool:
    """Whether a text holds a character that a person would see: not white space, not a control or format
    mark. Half of a surrogate pair counts: alone it is seen as U+FFFD.
    """
    return any(not char.isspace() and (char.isprintable() or "\ud800" <= char <= "\udfff") for char in text)
