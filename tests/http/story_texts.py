"""The texts of a story of the web page, read from its Markdown without the page."""


def story_texts(markdown):
    """(place, text) of each: a place is the name of a control or version, or the number of a block and what the text is to it."""
    first, *blocks = [block.splitlines() for block in markdown.split("\n\n")]
    pairs = [tuple(line.removeprefix("- ").split(": ", 1)) for line in first]
    for n, lines in enumerate(blocks):
        if lines[0].startswith("!["):
            quoted = "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines[1:])
            pairs += [((n, lines[0], i), text.replace("\n", " ")) for i, text in enumerate(quoted.split("\n\n"))]
        else:
            pairs.append(((n, lines[0].startswith("## ")), " ".join(lines).removeprefix("## ")))
    return pairs
