-- Fleet: content that differs by agent.

-- Counts the changes of its labels and annotations.
ALTER TABLE fleet_agents ADD COLUMN tags bigint NOT NULL DEFAULT 0;
-- Template, parameters and schema; then the content is the text of the template, and each agent
-- is offered its own rendering.
ALTER TABLE deployment_objects ADD COLUMN per_agent jsonb;

-- What an object is for one agent, or why it cannot be rendered.
CREATE TABLE fleet_renderings (
    agent_id uuid NOT NULL REFERENCES fleet_agents (id) ON DELETE RESTRICT,
    base_id uuid NOT NULL REFERENCES deployment_objects (id) ON DELETE RESTRICT,
    -- The tags of the agent that it was rendered with.
    tags bigint NOT NULL,
    object_id uuid REFERENCES deployment_objects (id) ON DELETE RESTRICT,
    problem text COLLATE "C",
    made_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (agent_id, base_id),
    CONSTRAINT fleet_renderings_problem_check CHECK ((object_id IS NULL) = (problem IS NOT NULL))
);
CREATE INDEX fleet_renderings_base_id_index ON fleet_renderings (base_id);
CREATE INDEX fleet_renderings_object_id_index
    ON fleet_renderings (object_id) WHERE object_id IS NOT NULL;
