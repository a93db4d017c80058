import ThicketProtocol
import ThicketTreeShape
import ThicketTreesystem

/// A bug in a device with a tree.
final class TreeMutation {
    private let mutant: Mutant
    private var random: SimulationRandom
    /// Batches of which no answer arrived.
    private var unanswered = false

    init(_ mutant: Mutant, _ random: SimulationRandom) { (self.mutant, self.random) = (mutant, random) }

    private func strikes(oneIn count: Int) -> Bool { random.below(count) == 0 }

    /// A batch as the device sends it.
    func sent(_ body: [UInt8]) -> [UInt8] {
        guard mutant == .removesUnknown, let batch = try? TreeBatch(parsing: body) else { return body }
        let operations = batch.operations.map { operation -> TreeOperation in
            guard case .deleteTree(var branch) = operation else { return operation }
            (branch.known, branch.includesUnknown) = ([:], true)
            return .deleteTree(branch)
        }
        return JSONValue.object(TreeBatch(id: batch.id, operations).object).serialized()
    }

    /// The device has received an answer, or none.
    /// - Returns: an operation that it now forgets.
    func answered(_ reply: BatchReply, _ machine: TreeMachine) -> OperationID? {
        guard mutant == .forgottenOperation else { return nil }
        if case .unknown = reply {
            unanswered = true
            return nil
        }
        guard unanswered else { return nil }
        unanswered = false
        return machine.queue.ids.first { id in
            guard let operation = machine.queue[id], !operation.isSending else { return false }
            return operation.isCreation
        }
    }

    /// A position that the device stores before it has applied the changes, and then dies.
    func earlyPosition(_ texts: [[UInt8]]) -> String? {
        guard mutant == .earlyPosition, strikes(oneIn: 10) else { return nil }
        for text in texts.reversed() {
            guard let message = try? ServerMessage(parsing: text),
                case .channel(_, .changes(let events)) = message
            else { continue }
            for case .applied(let change) in events.reversed() { return change.cv.text }
        }
        return nil
    }
}
