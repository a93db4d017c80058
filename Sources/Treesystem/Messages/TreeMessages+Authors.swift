public import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Messages that are not shown because they are not verified yet.
extension TreeMessages {
    /// An author whose keys cannot be used now, and whose messages are therefore not shown.
    public struct UnverifiedAuthor: Sendable, Hashable {
        /// The account that the messages name; nothing has proved it.
        public let author: UserID
        /// How many messages of the inbox wait.
        public let messages: Int
        /// A stable code: `offline`, `needs-confirmation`, `not-witnessed`, `alarm`, `absent`.
        public let reason: String
        /// The reason as a text for people.
        public let detail: String
    }

    /// Looks up the keys of all authors whose messages are not verified yet, and verifies what can be verified. The
    /// tree does this by itself, with pauses; this call is for programs that end soon. When it returns, all heads of
    /// the key log that came with messages have been compared with the one that this device knows.
    ///
    /// - Returns: the authors whose messages still wait, in the order of their ids.
    /// - Throws: `store`, `closed`.
    @discardableResult
    public func lookUpAuthors() async throws(TreeError) -> [UnverifiedAuthor] {
        let questions = try await act { skeleton throws(TreeError) in
            skeleton.messages.awaiting.keys.map { ($0, isOwn: KeyRenewal.isOwn($0, skeleton)) }
        }
        var troubles = [(question: KeyQuestion, trouble: KeyTrouble)]()
        for (question, isOwn) in questions {
            let answer = isOwn ? await ownKeys(question) : await tree.connection.people.answer(question)
            if case .failed(let trouble) = answer { troubles.append((question, trouble)) }
            await tree.feed { machine throws(TreeError) in
                try KeyQuestions.answered(question, answer, &machine.skeleton)
            }
        }
        await tree.connection.heads.finish()
        let failed = troubles
        return try await act { skeleton throws(TreeError) in
            var found = [UnverifiedAuthor]()
            for (question, trouble) in failed {
                let count = try Self.messages(skeleton.messages.awaiting[question] ?? [], skeleton)
                guard count > 0 else { continue }
                found.append(
                    UnverifiedAuthor(
                        author: question.user, messages: count, reason: trouble.rawValue, detail: trouble.detail))
            }
            return found.sorted { $0.author.text < $1.author.text }
        }
    }

    private func ownKeys(_ question: KeyQuestion) async -> KeyAnswer {
        let identity = await tree.connection.people.renewed()
        await tree.feed { machine throws(TreeError) in KeyRenewal.renewed(identity, &machine.skeleton) }
        return KeyRenewal.answer(question, identity)
    }

    /// How many of these nodes are messages of the inbox: attachments wait with their message.
    private static func messages(_ nodes: Set<NodeID>, _ skeleton: TreeSkeleton) throws(TreeError) -> Int {
        var count = 0
        for id in nodes {
            guard let row = try skeleton.store.row(id), row.state == .awaiting, row.parent == .trunk(.inbox) else {
                continue
            }
            count += 1
        }
        return count
    }
}
