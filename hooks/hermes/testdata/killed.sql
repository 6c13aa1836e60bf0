INSERT INTO sessions VALUES ('20261130_064908_5e987a', 'cli', '{"max_iterations": 90, "reasoning_config": null, "max_tokens": null}', NULL, 1796021360.739037, NULL, NULL, '/home/dev/project');
INSERT INTO messages VALUES (1, '20261130_064908_5e987a', 'user', 'Our billing rewrite is called Quillfeather and it goes live on 23 March.', NULL, NULL, 1796021360.879281, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (2, '20261130_064908_5e987a', 'user', 'Go on, please.', NULL, NULL, 1796021383.134201, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (3, '20261130_064908_5e987a', 'assistant', 'Well.', NULL, NULL, 1796021386.8089902, 'stop', 0, 1, 0, NULL);
