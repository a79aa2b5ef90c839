CREATE TABLE `task` (
	`n` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`agent` text NOT NULL,
	`status` text NOT NULL,
	`created_at` integer NOT NULL,
	`started_at` integer,
	`completed_at` integer,
	`lease_owner` text,
	`lease_until` integer,
	`idempotency_key` text,
	`idempotency_hash` text,
	`chat_id` text NOT NULL,
	`room_id` text,
	`persona_id` text,
	`turn_id` text,
	`call_id` text,
	`sender_id` text,
	`tainted` integer,
	`error` text,
	`goal` text NOT NULL,
	`result` text,
	`request` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `task_by_id` ON `task` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `task_by_key` ON `task` (`idempotency_key`) WHERE "task"."idempotency_key" is not null;--> statement-breakpoint
CREATE INDEX `task_pending` ON `task` (`n`,`room_id`) WHERE "task"."status" = 'pending';--> statement-breakpoint
CREATE INDEX `task_running` ON `task` (`lease_owner`) WHERE "task"."status" = 'running';--> statement-breakpoint
CREATE INDEX `task_delegated` ON `task` (`room_id`) WHERE "task"."room_id" is not null and "task"."status" in ('pending', 'running');--> statement-breakpoint
CREATE TABLE `task_event` (
	`task` integer NOT NULL,
	`n` integer NOT NULL,
	`body` text NOT NULL,
	PRIMARY KEY(`task`, `n`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `task_message` (
	`task` integer NOT NULL,
	`n` integer NOT NULL,
	`mode` text NOT NULL,
	`text` text NOT NULL,
	`at` integer NOT NULL,
	`taken` integer DEFAULT false NOT NULL,
	PRIMARY KEY(`task`, `n`)
) WITHOUT ROWID;
