import ThicketProtocol
import ThicketSealed

/// An object's record with the values derived from it.
struct LocalEntity {
    var record: EntityRecord
    /// The ghost with `pending` applied.
    var base: JSONObject?
    /// The ghost with `pending` and `later` applied: what the app sees.
    var local: JSONObject?
    /// In a sealed bucket: the state derived from the record.
    var sealed: SealedObject?
    /// The states that the app wanted by pending and by later edits that replace the whole object, before changes of
    /// others moved them; nil: no change did. Not stored: after a restart the rebased edits are used.
    var wanted = Wanted()

    /// The newest state that is known to be on the server, applied or not.
    var newest: Ghost { record.edits.held ?? record.ghost }

    /// The objects that result from edits of whole objects.
    struct Wanted {
        var pending: JSONObject?
        var later: JSONObject?
    }
}

extension EditState {
    /// In an open bucket: whether edits wait to become a change.
    var isWaiting: Bool { pending == nil && later != nil && refusal == nil }

    /// A refusal for good no longer holds.
    mutating func forgetRefusal() {
        refusal = nil
        forgetRefusals()
    }
}
