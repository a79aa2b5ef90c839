CREATE INDEX `message_in_room` ON `message` (`room_id`,`id`) WHERE "message"."author_kind" <> 'gateway';--> statement-breakpoint
CREATE INDEX `asked_call_of_turn` ON `asked_call` (`turn_id`);--> statement-breakpoint
CREATE INDEX `command_in_room` ON `command` (`room_id`,`id`);--> statement-breakpoint
CREATE INDEX `outbox_beside` ON `outbox` (`chat_id`,`id`) WHERE substr("outbox"."origin", 1, 5) <> 'turn:';--> statement-breakpoint
CREATE INDEX `turn_unsaid` ON `turn` (`room_id`,`finished_at`) WHERE "turn"."state" in ('failed', 'parked', 'aborted');