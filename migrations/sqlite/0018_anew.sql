ALTER TABLE `message` ADD `saying` integer;--> statement-breakpoint
ALTER TABLE `message` ADD `version` integer;--> statement-breakpoint
CREATE INDEX `message_versions` ON `message` (`saying`,`version`) WHERE "message"."saying" is not null;--> statement-breakpoint
ALTER TABLE `room` ADD `anew` integer;--> statement-breakpoint
ALTER TABLE `turn` ADD `anew` text;