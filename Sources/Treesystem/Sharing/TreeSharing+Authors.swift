public import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Records of shared branches that are not shown because they are not verified yet.
extension TreeSharing {
    /// An author whose keys cannot be used now, and whose records are therefore not shown.
    public struct UnverifiedAuthor: Sendable, Hashable {
        /// The account that the records name; nothing has proved it.
        public let author: UserID
        /// How many nodes wait.
        public let nodes: Int
        /// A stable code: `offline`, `needs-confirmation`, `alarm`, `absent`.
        public let reason: String
        /// The reason as a text for people.
        public let detail: String
    }

    /// Rounds of look-ups at most: what is below a record may wait for other keys, one level after the other.
    private static let roundsMax = TreeLimits.depthMax

    /// Looks up the keys of all authors whose records are not verified yet, and verifies what can be verified. The tree
    /// does this by itself, with pauses; this call is for programs that end soon.
    ///
    /// - Returns: the authors whose records still wait, in the order of their ids.
    /// - Throws: `store`, `closed`.
    @discardableResult
    public func lookUpAuthors() async throws(TreeError) -> [UnverifiedAuthor] {
        var troubles = [KeyQuestion: KeyTrouble]()
        var asked = Set<KeyQuestion>()
        for _ in 0..<Self.roundsMax {
            let waiting = try await Self.act(tree) { skeleton throws(TreeError) in
                Set(skeleton.branches.waiting.keys)
            }
            let questions = waiting.subtracting(asked)
            if questions.isEmpty { break }
            for question in questions {
                let answer = await tree.connection.people.answer(question)
                if case .failed(let trouble) = answer { troubles[question] = trouble }
                await tree.feed { machine throws(TreeError) in
                    try KeyQuestions.answered(question, answer, &machine.skeleton)
                }
            }
            asked.formUnion(questions)
        }
        await tree.connection.heads.finish()
        let failed = troubles
        return try await Self.act(tree) { skeleton throws(TreeError) in
            failed.compactMap { question, trouble in
                guard let count = skeleton.branches.waiting[question]?.count, count > 0 else { return nil }
                return UnverifiedAuthor(
                    author: question.user, nodes: count, reason: trouble.rawValue, detail: trouble.detail)
            }.sorted { $0.author.text < $1.author.text }
        }
    }
}
