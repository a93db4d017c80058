package import ThicketTreeShape

/// Contents in files, for a host that runs the machine without `Treesystem`.
package enum MachineFiles {
    /// The blob of a node; nil for a node without content, and for content in the record.
    package static func reference(
        of id: NodeID, in machine: inout TreeMachine
    ) throws(TreeError) -> BlobReference? { try machine.skeleton.reference(of: id) }

    /// The sealed file of an operation is gone: the app decides.
    package static func loseFile(of id: OperationID, in machine: inout TreeMachine) throws(TreeError) {
        if try LostContents.loseFile(of: id, &machine.skeleton) { try machine.provided(id, .unavailable) }
    }

    /// The server refuses the content of an operation for good.
    package static func refuse(
        _ id: OperationID, _ error: ContentError, in machine: inout TreeMachine
    ) throws(TreeError) {
        machine.skeleton.queue.asked.remove(id)
        guard let operation = machine.queue[id] else { return }
        try machine.skeleton.fail(operation, TreeError(error))
    }
}
