package import ThicketKeyLog
package import ThicketProtocol
package import ThicketTree
import ThicketTreeShape

/// What a tree needs of the look-up of other accounts' keys, which verifies them in the key log.
package protocol PeopleLookUp: Sendable {
    /// Verified keys: the newest ones, or those that the question names.
    func answer(_ question: KeyQuestion) async -> KeyAnswer
    /// Another account knows this head of the log.
    func heard(_ head: KeyLogHead, from user: UserID) async
    /// The account's own keys, read again from its bundle; entries that the key log lacks are appended.
    ///
    /// - Returns: nil when the server does not answer.
    func renewed() async -> MessageIdentity?
}

/// Looking up keys for a tree.
enum KeyLookUp {
    static func start(_ question: KeyQuestion, _ tree: isolated Treesystem) {
        let people = tree.connection.people
        Task { [weak tree] in
            let answer = await people.answer(question)
            await tree?.feed { machine throws(TreeError) in
                try KeyQuestions.answered(question, answer, &machine.skeleton)
            }
        }
    }

    static func renew(_ question: KeyQuestion?, _ tree: isolated Treesystem) {
        let people = tree.connection.people
        Task { [weak tree] in
            let identity = await people.renewed()
            await tree?.feed { machine throws(TreeError) in
                KeyRenewal.renewed(identity, &machine.skeleton)
                guard let question else { return }
                try KeyQuestions.answered(question, KeyRenewal.answer(question, identity), &machine.skeleton)
            }
        }
    }

    static func hear(_ head: KeyLogHead, _ user: UserID, _ connection: TreeConnection) {
        connection.heads.start(head, from: user, connection.people)
    }
}
