CREATE TABLE `question` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`room_id` text NOT NULL,
	`sender_id` text NOT NULL,
	`asked_by` text NOT NULL,
	`name` text NOT NULL,
	`argument` text NOT NULL,
	`until` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `question_of` ON `question` (`room_id`,`sender_id`);--> statement-breakpoint
CREATE TABLE `shown` (
	`turn_id` text PRIMARY KEY NOT NULL,
	`parts` text NOT NULL,
	`crashes` integer DEFAULT 0 NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
DROP INDEX `outbox_open`;--> statement-breakpoint
ALTER TABLE `outbox` ADD `precedes` integer;--> statement-breakpoint
ALTER TABLE `outbox` ADD `shown_key` text;--> statement-breakpoint
ALTER TABLE `outbox` ADD `lease_owner` text;--> statement-breakpoint
ALTER TABLE `outbox` ADD `lease_until` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX `outbox_next` ON `outbox` (`chat_id`,case when precedes is null then id else precedes - 0.5 end) WHERE "outbox"."finished_at" is null;--> statement-breakpoint
ALTER TABLE `command` ADD `crashes` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `command` ADD `lease_owner` text;--> statement-breakpoint
ALTER TABLE `command` ADD `lease_until` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `message` ADD `reaction` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `room` ADD `revision` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `room` ADD `newest_message` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `turn` ADD `waits_for` text;--> statement-breakpoint
ALTER TABLE `turn` ADD `waits_until` integer;--> statement-breakpoint
CREATE INDEX `turn_suspended` ON `turn` (`room_id`) WHERE "turn"."state" in ('suspended', 'ready');--> statement-breakpoint
CREATE INDEX `turn_waits_for` ON `turn` (`waits_for`) WHERE "turn"."waits_for" is not null;--> statement-breakpoint
ALTER TABLE `chat` DROP COLUMN `last_message_at`;--> statement-breakpoint
UPDATE `room` SET `newest_message` = coalesce((SELECT max(`id`) FROM `message`), 0);--> statement-breakpoint
UPDATE `message` SET `reaction` = 1 WHERE `platform_message_id` LIKE 'reaction:%' AND `quiet` = 1;--> statement-breakpoint
UPDATE `message` SET `state` = 'done' WHERE `state` = 'taken';--> statement-breakpoint
INSERT INTO `shown` (`turn_id`, `parts`)
	SELECT `turn_id`, json_group_array(json_object(
		'body', json(`body`), 'speaker', `speaker`, 'appearance', json(`face`), 'key', `id` || '-open',
		'platformMessageId', nullif(`platform_message_id`, ''), 'sentAt', `created_at`))
	FROM (
		SELECT `outbox`.*, `turn`.`id` AS `turn_id` FROM `outbox` JOIN `turn` ON `turn`.`id` = substr(`origin`, 6)
		WHERE `outbox`.`state` = 'open' AND `turn`.`state` = 'running' AND `platform_message_id` IS NOT NULL
		ORDER BY `turn`.`id`, `part`)
	GROUP BY `turn_id`;--> statement-breakpoint
DELETE FROM `outbox` WHERE `state` = 'open' AND substr(`origin`, 6) IN (SELECT `id` FROM `turn` WHERE `state` = 'running');--> statement-breakpoint
UPDATE `outbox` SET `state` = 'waiting' WHERE `state` = 'open';--> statement-breakpoint
UPDATE `outbox` SET `shown_key` = `id` || '-open' WHERE `finished_at` IS NULL AND `platform_message_id` IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `early_result` (
	`waits_for` text PRIMARY KEY NOT NULL,
	`content` text NOT NULL,
	`failed` integer NOT NULL,
	`at` integer NOT NULL
);
