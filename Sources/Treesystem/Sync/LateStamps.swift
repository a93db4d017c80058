import ThicketProtocol
import ThicketTreeShape

/// The server's stamps come with the change of the log; the answer to a batch does not have them.
enum LateStamps {
    static func add(
        _ change: AppliedChange, to row: NodeRow?, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        if let row { try Branches.reached(row.id, change.ev, &skeleton) }
        guard var row, row.version == change.ev, let text = row.record,
            var record = try? NodeRecord(parsing: text, from: .server), record.stamps.changed == nil,
            let diff = change.diff.flatMap({ try? ObjectDiff($0) }),
            let object = try? JSONDiff.applyWhole(diff, to: record.object.without(RecordKey.stampNames)),
            let stamped = try? NodeRecord(object, from: .server), stamped.metadata == record.metadata
        else { return }
        record.stamps = stamped.stamps
        (row.record, row.changed) = (record.object.serialized(), record.stamps.changed ?? row.changed)
        try skeleton.write(row)
    }
}
