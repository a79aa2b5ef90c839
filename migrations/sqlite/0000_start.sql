CREATE TABLE `alias` (
	`id` text PRIMARY KEY NOT NULL,
	`chat_id` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `approval` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`owner` integer NOT NULL,
	`approved_at` integer NOT NULL,
	`revoked_at` integer
);
--> statement-breakpoint
CREATE TABLE `chat` (
	`id` text PRIMARY KEY NOT NULL,
	`channel` text NOT NULL,
	`account` text NOT NULL,
	`address` text NOT NULL,
	`moves` integer DEFAULT 0 NOT NULL,
	`kind` text NOT NULL,
	`title` text NOT NULL,
	`active_persona` text DEFAULT 'default' NOT NULL,
	`last_message_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `command` (
	`id` integer PRIMARY KEY NOT NULL,
	`room_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`account` text NOT NULL,
	`moves` integer NOT NULL,
	`platform_message_id` text NOT NULL,
	`sender_id` text NOT NULL,
	`sender_name` text NOT NULL,
	`administrator` integer NOT NULL,
	`name` text NOT NULL,
	`argument` text NOT NULL,
	`after_message` integer NOT NULL,
	`received_at` integer NOT NULL,
	`state` text NOT NULL,
	`tries` integer DEFAULT 0 NOT NULL,
	`finished_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `command_once` ON `command` (`chat_id`,`account`,`moves`,`platform_message_id`);--> statement-breakpoint
CREATE INDEX `command_open` ON `command` (`id`) WHERE "command"."finished_at" is null;--> statement-breakpoint
CREATE TABLE `cursor` (
	`channel` text NOT NULL,
	`account` text NOT NULL,
	`value` text NOT NULL,
	PRIMARY KEY(`channel`, `account`)
);
--> statement-breakpoint
CREATE TABLE `heard` (
	`room_id` text NOT NULL,
	`persona_id` text NOT NULL,
	`addressed` integer NOT NULL,
	`heard_after` integer NOT NULL,
	`message_id` integer NOT NULL,
	PRIMARY KEY(`room_id`, `persona_id`, `addressed`, `heard_after`, `message_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `left_address` (
	`chat_id` text NOT NULL,
	`address` text NOT NULL,
	`moves` integer NOT NULL,
	PRIMARY KEY(`chat_id`, `address`)
);
--> statement-breakpoint
CREATE TABLE `message` (
	`id` integer PRIMARY KEY NOT NULL,
	`room_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`account` text NOT NULL,
	`moves` integer NOT NULL,
	`author_kind` text NOT NULL,
	`author_id` text NOT NULL,
	`author_name` text NOT NULL,
	`administrator` integer NOT NULL,
	`text` text NOT NULL,
	`sent_at` integer NOT NULL,
	`received_at` integer NOT NULL,
	`platform_message_id` text,
	`mentions_bot` integer NOT NULL,
	`reply_to` text,
	`edited` integer NOT NULL,
	`state` text NOT NULL,
	`turn_id` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `message_once` ON `message` (`chat_id`,`account`,`moves`,`platform_message_id`) WHERE "message"."edited" = 0 and "message"."platform_message_id" is not null;--> statement-breakpoint
CREATE INDEX `message_edited` ON `message` (`chat_id`,`account`,`moves`,`platform_message_id`) WHERE "message"."edited" = 1;--> statement-breakpoint
CREATE INDEX `message_waiting` ON `message` (`room_id`,`id`) WHERE "message"."state" = 'waiting';--> statement-breakpoint
CREATE TABLE `outbox` (
	`id` integer PRIMARY KEY NOT NULL,
	`origin` text NOT NULL,
	`persona_id` text NOT NULL,
	`speaker` text NOT NULL,
	`part` integer NOT NULL,
	`chat_id` text NOT NULL,
	`channel` text NOT NULL,
	`address` text NOT NULL,
	`thread_id` text,
	`kind` text NOT NULL,
	`body` text NOT NULL,
	`reply_to` text,
	`created_at` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`uncertain_cuts` integer DEFAULT 0 NOT NULL,
	`uncertain_crashes` integer DEFAULT 0 NOT NULL,
	`not_before` integer DEFAULT 0 NOT NULL,
	`state` text NOT NULL,
	`platform_message_id` text,
	`finished_at` integer,
	`error` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `outbox_once` ON `outbox` (`origin`,`persona_id`,`part`);--> statement-breakpoint
CREATE INDEX `outbox_open` ON `outbox` (`chat_id`,`id`) WHERE "outbox"."finished_at" is null;--> statement-breakpoint
CREATE INDEX `outbox_parked` ON `outbox` (`id`) WHERE "outbox"."state" = 'parked';--> statement-breakpoint
CREATE INDEX `outbox_by_platform_id` ON `outbox` (`chat_id`,`platform_message_id`) WHERE "outbox"."platform_message_id" is not null;--> statement-breakpoint
CREATE TABLE `pairing` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`channel` text NOT NULL,
	`code` text NOT NULL,
	`name` text NOT NULL,
	`requested_at` integer NOT NULL,
	`expires_at` integer,
	`speaker` text NOT NULL,
	`chat_id` text NOT NULL,
	`address` text NOT NULL,
	`thread_id` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `pairing_by_code` ON `pairing` (`code`) WHERE "pairing"."code" <> '';--> statement-breakpoint
CREATE TABLE `room` (
	`id` text PRIMARY KEY NOT NULL,
	`chat_id` text NOT NULL,
	`lease_owner` text,
	`lease_until` integer DEFAULT 0 NOT NULL,
	`fence` integer DEFAULT 0 NOT NULL,
	`last_persona` text,
	`last_reply_at` integer
);
--> statement-breakpoint
CREATE TABLE `setting` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `step` (
	`turn_id` text NOT NULL,
	`n` integer NOT NULL,
	`body` text NOT NULL,
	PRIMARY KEY(`turn_id`, `n`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `turn` (
	`id` text PRIMARY KEY NOT NULL,
	`room_id` text NOT NULL,
	`persona_id` text NOT NULL,
	`state` text NOT NULL,
	`started_at` integer NOT NULL,
	`finished_at` integer,
	`attempts` integer DEFAULT 0 NOT NULL,
	`crashes` integer DEFAULT 0 NOT NULL,
	`used_tools` integer DEFAULT false NOT NULL,
	`batch` text NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `turn_running` ON `turn` (`room_id`) WHERE "turn"."state" = 'running';--> statement-breakpoint
CREATE INDEX `turn_parked` ON `turn` (`id`) WHERE "turn"."state" = 'parked';--> statement-breakpoint
CREATE TABLE `usage` (
	`chat_id` text NOT NULL,
	`day` integer NOT NULL,
	`persona_id` text NOT NULL,
	`turns` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	PRIMARY KEY(`chat_id`, `day`, `persona_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `view` (
	`room_id` text NOT NULL,
	`persona_id` text NOT NULL,
	`reset_at` integer NOT NULL,
	PRIMARY KEY(`room_id`, `persona_id`)
);
