ALTER TABLE "outbox" ADD COLUMN "shown_at" bigint;--> statement-breakpoint
CREATE INDEX "outbox_shown" ON "outbox" USING btree ("shown_key") WHERE "outbox"."shown_key" is not null;