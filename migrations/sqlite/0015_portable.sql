ALTER TABLE `offer` ADD `n` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `outbox` ADD `turn_id` text;--> statement-breakpoint
ALTER TABLE `turn` ADD `first_message` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `journal` ADD `wordless` integer DEFAULT false NOT NULL;--> statement-breakpoint
UPDATE `offer` SET `n` = rowid;--> statement-breakpoint
UPDATE `outbox` SET `turn_id` = CASE WHEN `origin` LIKE 'turn:%' THEN substr(`origin`, 6)
  ELSE substr(`origin`, 6, instr(substr(`origin`, 6), ':') - 1) END
  WHERE `origin` LIKE 'turn:%' OR `origin` LIKE 'tool:%:%';--> statement-breakpoint
UPDATE `turn` SET `first_message` = coalesce(json_extract(`batch`, '$[0]'), 0);--> statement-breakpoint
UPDATE `journal` SET `wordless` = 1 WHERE NOT coalesce(
  `entry`->>'$.content' <> '' OR `entry`->>'$.reasoning' <> ''
  OR `entry`->'$.action' <> json_object('tool', `entry`->>'$.action.tool')
  OR `results` NOT IN ('{"output":""}', '{"error":""}'), 0);
