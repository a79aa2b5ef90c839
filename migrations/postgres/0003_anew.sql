ALTER TABLE "message" ADD COLUMN "saying" bigint;--> statement-breakpoint
ALTER TABLE "message" ADD COLUMN "version" bigint;--> statement-breakpoint
ALTER TABLE "room" ADD COLUMN "anew" bigint;--> statement-breakpoint
ALTER TABLE "turn" ADD COLUMN "anew" text;--> statement-breakpoint
CREATE INDEX "message_versions" ON "message" USING btree ("saying","version") WHERE "message"."saying" is not null;