"""Recurrent networks: translation and a language model."""

import torch
from torch import nn


class Encoder(nn.Module):
    """One bidirectional layer, then layers in one direction with residual connections."""

    def __init__(self, width, layers):
        super().__init__()
        self.first = nn.LSTM(width, width, bidirectional=True)
        self.second = nn.LSTM(2 * width, width)
        self.rest = nn.ModuleList(nn.LSTM(width, width) for _ in range(layers - 2))

    def forward(self, x):
        x = self.second(self.first(x)[0])[0]
        for layer in self.rest:
            x = x + layer(x)[0]
        return x


class AdditiveAttention(nn.Module):
    """``v . tanh(W q + U k)`` for each query and key, softmax over keys (Bahdanau et al. 2014)."""

    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, queries, memory):
        q = self.query(queries).transpose(0, 1).unsqueeze(2)
        k = self.key(memory).transpose(0, 1).unsqueeze(1)
        weights = self.score(torch.tanh(q + k)).squeeze(3).softmax(2)
        return torch.bmm(weights, memory.transpose(0, 1)).transpose(0, 1)


class Decoder(nn.Module):
    """Every layer but the first also reads the attention that the first layer's output asks for."""

    def __init__(self, width, layers):
        super().__init__()
        self.first = nn.LSTM(width, width)
        self.attention = AdditiveAttention(width)
        self.second = nn.LSTM(2 * width, width)
        self.rest = nn.ModuleList(nn.LSTM(2 * width, width) for _ in range(layers - 2))

    def forward(self, x, memory):
        x = self.first(x)[0]
        context = self.attention(x, memory)
        x = self.second(torch.cat([x, context], 2))[0]
        for layer in self.rest:
            x = x + layer(torch.cat([x, context], 2))[0]
        return x


class GNMT(nn.Module):
    """Wu et al., "Google's neural machine translation system", 2016, with the attention of v2:
    over the outputs of the decoder's first layer. Tokens are (length, batch)."""

    def __init__(self, vocabulary, width, layers=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.encoder = Encoder(width, layers)
        self.decoder = Decoder(width, layers)
        self.classifier = nn.Linear(width, vocabulary)

    def forward(self, source, target):
        memory = self.encoder(self.embedding(source))
        return self.classifier(self.decoder(self.embedding(target), memory))


class RecurrentLanguageModel(nn.Module):
    """Zaremba et al., "Recurrent neural network regularization", 2014, without the dropout. Tokens
    are (length, batch)."""

    def __init__(self, vocabulary, width, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.recurrent = nn.LSTM(width, width, layers)
        self.classifier = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.classifier(self.recurrent(self.embedding(tokens))[0])
