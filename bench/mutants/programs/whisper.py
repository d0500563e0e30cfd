"""transformers' Whisper: convolutions over a spectrogram, cross attention."""
import torch
from training import train
from transformers import WhisperConfig, WhisperForConditionalGeneration

torch.manual_seed(6)
config = WhisperConfig(vocab_size=64, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
                       encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=8, max_source_positions=16, max_target_positions=16, dropout=0.1,
                       pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, attn_implementation="eager", use_cache=False)  # fmt: skip
model = WhisperForConditionalGeneration(config)
batches = [{"input_features": torch.randn(2, 8, 32), "labels": torch.randint(3, 64, (2, 8))} for _ in range(2)]
optimizer = train(model, batches, lambda model, batch: model(**batch).loss)
