import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NAMES = {0: ["anna", "maria", "luca", "giulia"], 1: ["hans", "fritz", "karl", "heidi"], 2: ["juan", "pablo", "ines", "rosa"]}


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super(RNN, self).__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        hidden = torch.tanh(self.i2h(torch.cat((input, hidden), 1)))
        return self.softmax(self.h2o(hidden)), hidden

    def init_hidden(self):
        return torch.zeros(1, self.hidden_size)


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, len(LETTERS))
    for i, letter in enumerate(line):
        tensor[i][0][LETTERS.index(letter)] = 1
    return tensor


def random_example():
    category = int(torch.randint(0, 3, ()))
    name = NAMES[category][int(torch.randint(0, 4, ()))]
    return torch.tensor([category]), line_to_tensor(name)


torch.manual_seed(SEED)
criterion = nn.NLLLoss()
rnn = RNN(len(LETTERS), 32, 3)
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.05)


def train(category, line):
    hidden = rnn.init_hidden()
    optimizer.zero_grad()
    for i in range(line.size(0)):
        output, hidden = rnn(line[i], hidden)
    loss = criterion(output, category)
    loss.backward()
    optimizer.step()
    return loss.item()


rnn = RNN(len(LETTERS), 32, 3)  # a fresh start
for step in range(STEPS):
    category, line = random_example()
    print(step, train(category, line))
