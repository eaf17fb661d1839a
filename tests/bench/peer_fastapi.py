"""The service most people would write: FastAPI, PyTorch, a list for JSON and bytes for the rest. JSONResponse by name, not
a bare dict: FastAPI would look at every number of that in Python first, ten times as slow, and its users learn so."""
import math

import torch
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response

app = FastAPI()


def table_of(n, dim):
    positions = torch.arange(n, dtype=torch.float32).unsqueeze(1)
    angles = positions * torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    table = torch.zeros(n, dim)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table


def alibi_of(heads, n):
    slopes = torch.tensor([2.0 ** (-8 * (h + 1) / heads) for h in range(heads)])
    positions = torch.arange(n, dtype=torch.float32)
    distance = -(positions[None, :] - positions[:, None]).abs()
    return slopes[:, None, None] * distance[None]


def answer(tensor, form):
    if form == "raw":
        return Response(tensor.numpy().tobytes(), media_type="application/octet-stream")
    return JSONResponse({"shape": list(tensor.shape), "data": tensor.tolist()})


@app.get("/small")
def small(n: int = 8, dim: int = 16):
    return answer(table_of(n, dim), "json")


@app.get("/table")
def table(n: int = 2048, dim: int = 128, form: str = "json"):
    return answer(table_of(n, dim), form)


@app.get("/alibi")
def alibi(heads: int = 8, n: int = 1024, form: str = "json"):
    return answer(alibi_of(heads, n), form)
