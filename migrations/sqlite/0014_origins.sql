CREATE TABLE `outside_line` (
	`file` text NOT NULL,
	`line` text NOT NULL,
	`n` integer NOT NULL,
	PRIMARY KEY(`file`, `line`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `outside_line_order` ON `outside_line` (`file`,`n`);--> statement-breakpoint
ALTER TABLE `message` ADD `mentions` text;