from torch import nn


class ConvNet(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.conv = nn.Conv2d(2, width, 3)
        self.bn = nn.BatchNorm2d(width)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(width, 4)

    def forward(self, x):
        return self.fc(self.drop(self.bn(self.conv(x)).relu().mean((2, 3))))
