INSERT INTO sessions VALUES ('20261130_065516_27bb06', 'cli', '{"max_iterations": 90, "reasoning_config": null, "max_tokens": null}', NULL, 1796021729.568959, 1796021734.9061384, 'new_session', '/home/dev/project');
INSERT INTO sessions VALUES ('20261130_065534_2447ad', 'cli', '{"max_iterations": 90, "reasoning_config": null}', NULL, 1796021734.9119015, 1796021736.357597, 'cli_close', NULL);
INSERT INTO messages VALUES (1, '20261130_065516_27bb06', 'user', 'What is the billing rewrite called, and when does it go live?', NULL, NULL, 1796021729.6499028, NULL, 0, 0, 0, 'API-CONTENT');
INSERT INTO messages VALUES (2, '20261130_065516_27bb06', 'assistant', 'Reply-1', NULL, NULL, 1796021731.625307, 'stop', 0, 0, 0, NULL);
INSERT INTO messages VALUES (3, '20261130_065516_27bb06', 'user', 'What is the billing rewrite called, and when does it go live?', NULL, NULL, 1796021733.079468, NULL, 0, 1, 0, 'API-CONTENT');
INSERT INTO messages VALUES (4, '20261130_065516_27bb06', 'assistant', 'Reply-2', NULL, NULL, 1796021734.6749763, 'stop', 0, 1, 0, NULL);
INSERT INTO messages VALUES (5, '20261130_065534_2447ad', 'user', 'What is the billing rewrite called, and when does it go live?', NULL, NULL, 1796021735.1468787, NULL, 0, 1, 0, 'API-CONTENT');
INSERT INTO messages VALUES (6, '20261130_065534_2447ad', 'assistant', 'Reply-3', NULL, NULL, 1796021735.7990983, 'stop', 0, 1, 0, NULL);
