CREATE TABLE `spent` (
	`day` integer NOT NULL,
	`person_id` text NOT NULL,
	`tokens` integer NOT NULL,
	`cost` integer NOT NULL,
	PRIMARY KEY(`day`, `person_id`)
) WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `usage` ADD `cost` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX `usage_day` ON `usage` (`day`);--> statement-breakpoint
UPDATE `pairing` SET `expires_at` = unixepoch() * 1000 + 604800000 WHERE `kind` = 'group' AND `expires_at` IS NULL;
