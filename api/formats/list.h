/* All formats, in order of preference: a tie in Accept goes to the one named first. */
FORMAT(json)
FORMAT(raw)
FORMAT(npy)
FORMAT(npz)
FORMAT(safetensors)
FORMAT(png)
FORMAT(text)
FORMAT(tex)
