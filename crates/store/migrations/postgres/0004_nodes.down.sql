DROP TABLE nodes;
DROP TABLE bootstrap_tokens;
