//! The rows of placement.

use slipway_app::access::authorise::Operation::*;
use slipway_core::placement::cluster;
use slipway_wire::deletion::Deletion;
use slipway_wire::placement::{
    AbandonCluster, AssignCluster, BlueprintDefinitions, Cluster, ClusterAssignment, CreateCluster,
    UpdateCluster,
};

use super::{clusters, definitions};
use crate::request::kind;
use crate::routes::{Route, delete, get, patch, post, put};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/clusters",                          ClusterRead,            kind::list::<cluster::Cluster>, "List clusters")
            .page::<Cluster>().query(&["show_deleted"]),
        post  ("/clusters",                          ClusterCreate,          clusters::create,               "Register a cluster")
            .create::<CreateCluster, Cluster>(),
        get   ("/clusters/{cluster}",                ClusterRead,            kind::get::<cluster::Cluster>,  "Show a cluster")
            .one::<Cluster>().query(&["show_deleted"]),
        patch ("/clusters/{cluster}",                ClusterUpdate,          clusters::update,               "Change a cluster")
            .body::<UpdateCluster>().one::<Cluster>().conditional(),
        delete("/clusters/{cluster}",                ClusterDelete,          kind::delete::<cluster::Cluster>, "Delete a cluster on which nothing is placed")
            .one::<Deletion>().query(&["reason", "grace", "plan", "break_glass"]).conditional(),
        get   ("/cluster-assignments",               ClusterListAssignments, clusters::assignments,          "List the cluster of each project")
            .page::<ClusterAssignment>(),
        get   ("/projects/{project}/cluster",        ClusterReadAssigned,    clusters::assignment,           "Show the cluster of a project")
            .one::<ClusterAssignment>(),
        put   ("/projects/{project}/cluster",        ClusterAssign,          clusters::assign,               "Place a project on a cluster")
            .body::<AssignCluster>().one::<ClusterAssignment>().conditional(),
        delete("/projects/{project}/cluster",        ClusterWithdraw,        clusters::withdraw,             "Withdraw a project without resources from its cluster")
            .one::<ClusterAssignment>().conditional().statuses(&[202, 204]),
        post  ("/projects/{project}/cluster/abandon", ClusterAbandon,        clusters::abandon,              "Take a project from a cluster that is lost for good")
            .body::<AbandonCluster>().one::<ClusterAssignment>(),
        get   ("/blueprints/{blueprint}/definitions", BlueprintRead,          definitions::list,              "List where definitions of a blueprint are installed, and the version found there")
            .page::<BlueprintDefinitions>().query(&["show_deleted"]),
    ]
}
