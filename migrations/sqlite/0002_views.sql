CREATE TABLE `archived` (
	`chat_id` text NOT NULL,
	`file` text NOT NULL,
	`room_id` text NOT NULL,
	`persona_id` text NOT NULL,
	`after_heard` integer NOT NULL,
	`after_message` integer NOT NULL,
	`to_heard` integer NOT NULL,
	`to_message` integer NOT NULL,
	`state` text NOT NULL,
	PRIMARY KEY(`chat_id`, `file`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `archived_open` ON `archived` (`chat_id`) WHERE "archived"."state" <> 'settled';--> statement-breakpoint
CREATE TABLE `given` (
	`room_id` text NOT NULL,
	`persona_id` text NOT NULL,
	`memory` text NOT NULL,
	`daily_log` text NOT NULL,
	PRIMARY KEY(`room_id`, `persona_id`)
);
--> statement-breakpoint
CREATE TABLE `version` (
	`n` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`chat_id` text NOT NULL,
	`persona_id` text NOT NULL,
	`file` text NOT NULL,
	`tier` integer,
	`before` text NOT NULL,
	`after` text NOT NULL,
	`at` integer NOT NULL,
	`cause` text NOT NULL,
	`undone` integer DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `version_by_id` ON `version` (`id`);--> statement-breakpoint
CREATE INDEX `version_of` ON `version` (`chat_id`,`persona_id`,`n`);--> statement-breakpoint
ALTER TABLE `view` ADD `window_heard` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `view` ADD `window_message` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `view` ADD `flushed_heard` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `view` ADD `flushed_message` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `view` ADD `summary` text;--> statement-breakpoint
ALTER TABLE `view` ADD `counted` integer;--> statement-breakpoint
ALTER TABLE `view` ADD `estimated` integer;