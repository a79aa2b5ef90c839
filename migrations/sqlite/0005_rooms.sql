ALTER TABLE `chat` ADD `invited` text;--> statement-breakpoint
ALTER TABLE `chat` ADD `away` text;--> statement-breakpoint
ALTER TABLE `command` ADD `twin` text;--> statement-breakpoint
ALTER TABLE `command` ADD `persona` text;--> statement-breakpoint
CREATE UNIQUE INDEX `command_twin` ON `command` (`chat_id`,`moves`,`twin`) WHERE "command"."twin" is not null;--> statement-breakpoint
ALTER TABLE `message` ADD `addresses` text;--> statement-breakpoint
ALTER TABLE `message` ADD `twin` text;--> statement-breakpoint
ALTER TABLE `message` ADD `bot` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `message_twin` ON `message` (`chat_id`,`moves`,`twin`) WHERE "message"."twin" is not null and "message"."edited" = 0;--> statement-breakpoint
ALTER TABLE `outbox` ADD `face` text;--> statement-breakpoint
ALTER TABLE `room` ADD `exchange` text;--> statement-breakpoint
ALTER TABLE `room` ADD `turns_for_bots` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX `room_exchange` ON `room` (`id`) WHERE "room"."exchange" is not null;