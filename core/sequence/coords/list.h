/* Every rule of coordinates on a grid, one line each, in the order of the catalogue; the first is the index itself.
 * A rule is core/sequence/coords/NAME.c and its line here. */
COORDS(index)
COORDS(one_based)
COORDS(normalized)
COORDS(resized)
COORDS(centered)
COORDS(pixel)
COORDS(resized_floor)
COORDS(window)
COORDS(cropped)
COORDS(half_centered)
