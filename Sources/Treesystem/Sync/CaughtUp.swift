import ThicketTree
import ThicketTreeShape

/// When a tree has everything that the server had when the connection was made.
///
/// A shared branch has that later than the end of the log: a change behind a record that is not believed yet requests
/// the whole record, and a record waits for keys of its author.
enum CaughtUp {
    /// What cannot be had now does not count: keys whose look-up failed are asked for again by themselves.
    static func isReached(_ machine: TreeMachine) -> Bool {
        guard machine.channel.phase == .live else { return false }
        let (branches, messages) = (machine.skeleton.branches, machine.skeleton.messages)
        if branches.isEmpty { return true }
        guard machine.channel.wanted.isEmpty, branches.memberRoot == nil || machine.lists.isIdle else { return false }
        return branches.waiting.keys.allSatisfy { messages.pauses[$0] != nil || messages.absent.contains($0) }
    }

    /// Reports the moment, once for each connection. Runs at the end of each turn, when all questions are asked.
    static func report(_ machine: inout TreeMachine) throws(TreeError) {
        machine.skeleton.branches.hasReachedLog = false
        let isReached = isReached(machine)
        machine.skeleton.branches.isCaughtUp = isReached
        if isReached { try EarlyRecords.judge(&machine.skeleton) }
        guard !machine.channel.isReported, isReached else { return }
        machine.channel.isReported = true
        machine.skeleton.events.append(.caughtUp)
    }
}
