CREATE TABLE "lease" (
	"name" text PRIMARY KEY NOT NULL,
	"node" text NOT NULL,
	"token" text NOT NULL,
	"fence" bigint NOT NULL,
	"until" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "node" (
	"name" text PRIMARY KEY NOT NULL,
	"token" text NOT NULL,
	"version" text NOT NULL,
	"since" bigint NOT NULL,
	"seen_at" bigint NOT NULL,
	"until" bigint NOT NULL
);
