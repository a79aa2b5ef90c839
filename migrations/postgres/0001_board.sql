CREATE INDEX "asked_call_of_turn" ON "asked_call" USING btree ("turn_id");--> statement-breakpoint
CREATE INDEX "command_in_room" ON "command" USING btree ("room_id","id");--> statement-breakpoint
CREATE INDEX "message_in_room" ON "message" USING btree ("room_id","id") WHERE "message"."author_kind" <> 'gateway';--> statement-breakpoint
CREATE INDEX "outbox_beside" ON "outbox" USING btree ("chat_id","id") WHERE substr("outbox"."origin", 1, 5) <> 'turn:';--> statement-breakpoint
CREATE INDEX "turn_unsaid" ON "turn" USING btree ("room_id","finished_at") WHERE "turn"."state" in ('failed', 'parked', 'aborted');