CREATE TABLE `offer` (
	`key` text PRIMARY KEY NOT NULL,
	`room_id` text NOT NULL,
	`sender_id` text NOT NULL,
	`options` text NOT NULL,
	`until` integer NOT NULL,
	`ended_at` integer
);
--> statement-breakpoint
CREATE INDEX `offer_open` ON `offer` (`room_id`) WHERE "offer"."ended_at" is null;--> statement-breakpoint
ALTER TABLE `chat` ADD `voice` text;--> statement-breakpoint
ALTER TABLE `message` ADD `forwarded_from` text;--> statement-breakpoint
ALTER TABLE `message` ADD `album` text;--> statement-breakpoint
ALTER TABLE `outbox` ADD `mark` text;--> statement-breakpoint
ALTER TABLE `question` ADD `offer` text;