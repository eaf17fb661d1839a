"""The service most people would write: FastAPI, PyTorch, a list for JSON and bytes for the rest. JSONResponse by name, not
a bare dict: FastAPI would look at every number of that in Python first, ten times as slow, and its users learn so."""
import torch
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
from peer_arrays import torch_alibi, torch_table

app = FastAPI()


def answer(tensor, form):
    if form == "raw":
        return Response(tensor.numpy().tobytes(), media_type="application/octet-stream")
    return JSONResponse({"shape": list(tensor.shape), "data": tensor.tolist()})


@app.get("/small")
def small(n: int = 8, dim: int = 16):
    return answer(torch_table(torch, n, dim), "json")


@app.get("/table")
def table(n: int = 2048, dim: int = 128, form: str = "json"):
    return answer(torch_table(torch, n, dim), form)


@app.get("/alibi")
def alibi(heads: int = 8, n: int = 1024, form: str = "json"):
    return answer(torch_alibi(torch, heads, n), form)
