DROP INDEX `journal_of_turn`;--> statement-breakpoint
DROP INDEX `journal_changed`;--> statement-breakpoint
DROP INDEX `journal_pending`;--> statement-breakpoint
CREATE UNIQUE INDEX `journal_changed` ON `journal` (`changed`) WHERE "journal"."changed" <> "journal"."n";--> statement-breakpoint
CREATE INDEX `journal_pending` ON `journal` (`owner`) WHERE "journal"."status" = 'pending' and "journal"."owner" is not null;