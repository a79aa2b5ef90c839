ALTER TABLE `outbox` ADD `shown_at` integer;--> statement-breakpoint
CREATE INDEX `outbox_shown` ON `outbox` (`shown_key`) WHERE "outbox"."shown_key" is not null;