DROP TABLE rollout_members;
DROP TABLE rollouts;
