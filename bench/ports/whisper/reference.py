"""transformers' Whisper: convolutions and an encoder for sound, a decoder for words."""
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration
from weights import BANDS, DIM, FRAMES, HEADS, HIDDEN, LAYERS, PAD, START, VOCAB, WORDS, batch, state

torch.set_num_threads(1)
config = WhisperConfig(
    vocab_size=VOCAB, num_mel_bins=BANDS, d_model=DIM, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
    decoder_attention_heads=HEADS, encoder_ffn_dim=HIDDEN, decoder_ffn_dim=HIDDEN, max_source_positions=FRAMES // 2, max_target_positions=WORDS,
    pad_token_id=PAD, bos_token_id=1, eos_token_id=2, decoder_start_token_id=START, use_cache=False, attn_implementation="eager")  # fmt: skip
model = WhisperForConditionalGeneration(config)
model.load_state_dict(state())
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    sound, words = batch(step)
    loss = model(input_features=sound, labels=words).loss
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.requires_grad])
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
