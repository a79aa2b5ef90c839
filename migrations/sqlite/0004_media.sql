CREATE TABLE `channel_state` (
	`channel` text NOT NULL,
	`name` text NOT NULL,
	`value` text NOT NULL,
	PRIMARY KEY(`channel`, `name`)
);
--> statement-breakpoint
ALTER TABLE `message` ADD `attachments` text;--> statement-breakpoint
ALTER TABLE `message` ADD `words` text;--> statement-breakpoint
ALTER TABLE `message` ADD `quiet` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `room` ADD `newest_platform_id` text;