// filled by its stage
