/* Every rule that scales rotary frequencies, one line each, in the order of the catalogue; the first is none at all.
 * A rule is core/schemes/scalings/NAME.c and its line here. */
SCALING(default)
SCALING(linear)
SCALING(ntk)
SCALING(ntk_fixed)
SCALING(dynamic)
SCALING(yarn)
SCALING(longrope)
SCALING(llama3)
SCALING(proportional)
SCALING(riflex)
