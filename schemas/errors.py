"""What can go wrong with bytes; each docstring states the consequence."""


class WordError(ValueError):
    """Bytes that are no word of ours."""


class UnknownSchema(WordError):
    """No published schema has this fingerprint: input is quarantined, a journal reader stops."""


class Undecodable(WordError):
    """The schema is known and the bytes do not follow it. Consequence as for `UnknownSchema`."""
