"""What loss functions are given (opguard.training.criteria), and what a load gives and leaves."""

from unittest.mock import ANY

from test_training_observations import observe, rows

LOSSES = """
import torch, torch.nn.functional as F
torch.manual_seed(0)
logits, classes = torch.randn(32, 5), torch.randint(5, (32,))
pictures, masks = torch.randn(2, 3, 8, 8), torch.randint(3, (2, 8, 8))
F.cross_entropy(logits, classes)
F.cross_entropy(logits.softmax(1), classes)
F.cross_entropy(logits.log_softmax(1), classes)
F.cross_entropy(pictures, masks)
F.cross_entropy(pictures.softmax(1), masks)
F.nll_loss(logits, classes)
F.nll_loss(logits.softmax(1), classes)
F.nll_loss(logits.log_softmax(1), classes)
F.binary_cross_entropy_with_logits(logits, torch.ones(32, 5))
F.binary_cross_entropy_with_logits(logits.sigmoid(), torch.ones(32, 5))
F.binary_cross_entropy_with_logits(torch.tensor([0.2, 0.4]), torch.ones(2))
F.kl_div(logits.log_softmax(1), logits.softmax(1), reduction='batchmean')
F.kl_div(logits.softmax(1), logits.softmax(1), reduction='batchmean')
torch.nn.MSELoss()(logits, logits)
"""


def test_what_a_loss_is_given(tmp_path):
    log = observe(LOSSES, tmp_path / "log")
    raw, shares, logarithms = "logits", "probabilities", "logarithms of probabilities"
    assert rows(log, "criterion", "function", "given", "fits") == [
        ["cross_entropy", raw, True], ["cross_entropy", shares, False], ["cross_entropy", logarithms, True],
        ["cross_entropy", raw, True], ["cross_entropy", shares, False],
        ["nll_loss", raw, False], ["nll_loss", shares, False], ["nll_loss", logarithms, True],
        ["binary_cross_entropy_with_logits", raw, True], ["binary_cross_entropy_with_logits", shares, False],
        ["binary_cross_entropy_with_logits", None, None],  # may be chance
        ["kl_div", logarithms, True], ["kl_div", shares, False], ["mse_loss", None, None],
    ]  # fmt: skip
    assert "opguard_faults" not in log.settings


LOADS = """
import torch, torch.nn as nn
net, other = nn.Linear(3, 2), nn.Linear(3, 2)
net(torch.ones(1, 3))
net.load_state_dict(net.state_dict())
net.load_state_dict(other.state_dict())
net.load_state_dict({name: value.clone() for name, value in net.state_dict().items()})
net.load_state_dict({'model.weight': torch.ones(2, 3)}, strict=False)
net.load_state_dict(other.state_dict(), assign=True)
optimizer = torch.optim.AdamW([{'params': [], 'weight_decay': 0.1}, {'params': net.parameters(), 'weight_decay': 0.0}])
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
optimizer.load_state_dict(optimizer.state_dict())
scheduler.load_state_dict(scheduler.state_dict())
nn.init.ones_(net.weight)
net(torch.ones(1, 3)).sum().backward()
optimizer.step()
"""


def test_what_is_loaded(tmp_path):
    log = observe(LOADS, tmp_path / "log")
    assert rows(log, "load", "of", "given", "missing", "unexpected", "own") == [
        ["module", 2, 0, 0, 2], ["module", 2, 0, 0, 0], ["module", 2, 0, 0, 0], ["module", 1, 2, 1, 0], ["module", 2, 0, 0, 0],
        ["optimizer", 0, None, None, None], ["scheduler", ANY, None, None, None],
    ]  # fmt: skip
    assert rows(log, "api", "name", "flag", name="init.ones_") == [["init.ones_", True]]
    assert not any(flag for name, flag in rows(log, "api", "name", "flag") if name.startswith("init.") and name != "init.ones_")
    assert rows(log, "optimizer", "decays") == [[False]]
    assert "opguard_faults" not in log.settings
