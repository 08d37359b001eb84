"""Whether a text shows anything."""


def is_visible(text: str) -> bool:
    """Whether a text holds a character that a person would see: not white space, not a control or format
    mark.
    """
    return any(not char.isspace() and char.isprintable() for char in text)
