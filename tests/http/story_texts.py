"""The texts of a story of the web page, read from its Markdown without the page."""


def story_texts(markdown):
    """(key, text) of each: the name of a control or version; "2" the title of section 2, "2.1" its first paragraph; "fig.dogs"
    what is seen in a figure, "fig.dogs.try" what to touch."""
    names, *blocks = [block.splitlines() for block in markdown.strip().split("\n\n")]
    pairs = [tuple(line.removeprefix("- ").split(": ", 1)) for line in names]
    section = paragraph = 0
    for lines in blocks:
        first = lines[0]
        if first.startswith("## "):
            section, paragraph = section + 1, 0
            pairs.append((str(section), " ".join(lines).removeprefix("## ")))
        elif first.startswith("!["):
            figure, quoted = f"fig.{first[2:-1]}", "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines[1:])
            pairs += [(key, text.replace("\n", " ")) for key, text in zip((figure, f"{figure}.try"), quoted.split("\n\n"), strict=True)]
        else:
            paragraph += 1
            pairs.append((f"{section}.{paragraph}", " ".join(lines)))
    return pairs
