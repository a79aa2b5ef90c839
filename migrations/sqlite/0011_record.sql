CREATE TABLE `asked_call` (
	`id` text PRIMARY KEY NOT NULL,
	`waits_for` text NOT NULL,
	`room_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`persona_id` text NOT NULL,
	`turn_id` text NOT NULL,
	`call_id` text NOT NULL,
	`tool` text NOT NULL,
	`arguments` text NOT NULL,
	`why` text NOT NULL,
	`asked_at` integer NOT NULL,
	`until` integer NOT NULL,
	`decision` text,
	`decided_by` text,
	`command_id` integer,
	`decided_at` integer
);
--> statement-breakpoint
CREATE INDEX `asked_call_open` ON `asked_call` (`chat_id`) WHERE "asked_call"."decision" is null;--> statement-breakpoint
CREATE TABLE `job` (
	`id` text PRIMARY KEY NOT NULL,
	`chat_id` text NOT NULL,
	`n` integer NOT NULL,
	`room_id` text NOT NULL,
	`persona_id` text NOT NULL,
	`prompt` text NOT NULL,
	`kind` text NOT NULL,
	`value` text NOT NULL,
	`timezone` text NOT NULL,
	`follow_up` integer NOT NULL,
	`sender_id` text NOT NULL,
	`created_at` integer NOT NULL,
	`state` text NOT NULL,
	`next_at` integer,
	`retry_of` integer,
	`failures` integer DEFAULT 0 NOT NULL,
	`sender_name` text DEFAULT '' NOT NULL,
	`tainted` integer DEFAULT false NOT NULL,
	`why` text,
	`ended_at` integer,
	`guarded` integer DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `job_number` ON `job` (`chat_id`,`n`);--> statement-breakpoint
CREATE INDEX `job_due` ON `job` (`next_at`) WHERE "job"."state" = 'active' and "job"."next_at" is not null;--> statement-breakpoint
CREATE INDEX `job_over` ON `job` (`ended_at`) WHERE "job"."ended_at" is not null;--> statement-breakpoint
CREATE TABLE `job_run` (
	`job_id` text NOT NULL,
	`slot` integer NOT NULL,
	`attempt` integer NOT NULL,
	`fired_at` integer NOT NULL,
	`event_id` text NOT NULL,
	`outcome` text NOT NULL,
	`finished_at` integer,
	PRIMARY KEY(`job_id`, `slot`, `attempt`)
);
--> statement-breakpoint
CREATE INDEX `job_run_open` ON `job_run` (`job_id`) WHERE "job_run"."outcome" = 'running';--> statement-breakpoint
CREATE INDEX `job_run_fired` ON `job_run` (`fired_at`);--> statement-breakpoint
CREATE TABLE `journal` (
	`n` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`chat_id` text NOT NULL,
	`room_id` text,
	`persona_id` text NOT NULL,
	`turn_id` text,
	`status` text,
	`owner` text,
	`changed` integer NOT NULL,
	`entry` text NOT NULL,
	`results` text,
	`at` integer NOT NULL,
	`finished_at` integer,
	`filed` text DEFAULT 'log' NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `journal_by_id` ON `journal` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `journal_changed` ON `journal` (`changed`);--> statement-breakpoint
CREATE INDEX `journal_pending` ON `journal` (`owner`) WHERE "journal"."status" = 'pending';--> statement-breakpoint
CREATE INDEX `journal_of_turn` ON `journal` (`turn_id`) WHERE "journal"."turn_id" is not null;--> statement-breakpoint
CREATE INDEX `journal_of_room` ON `journal` (`room_id`);--> statement-breakpoint
CREATE INDEX `journal_unfiled` ON `journal` (`n`) WHERE "journal"."filed" <> 'archive';--> statement-breakpoint
ALTER TABLE `message` ADD `tainted` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `view` ADD `tainted` integer DEFAULT false NOT NULL;