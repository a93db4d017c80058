internal import ThicketKeyLog
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Looking up keys of other accounts: those to which messages are sealed, and those that have signed them.
enum KeyQuestions {
    /// Whether an operation can be sealed as far as keys, and digests of contents, are concerned.
    static func isAnswered(for operation: PendingOperation, _ skeleton: TreeSkeleton) -> Bool {
        if Branches.isWaiting(operation.node, skeleton) { return false }
        if operation.fields.contains(.sharing) { return ShareChanges.isReady(operation, skeleton) }
        guard case .copy(let receiver, _) = operation.kind else { return true }
        return skeleton.messages.identity != nil && skeleton.messages.keys[KeyQuestion(receiver)] != nil
            && !skeleton.queue.asked.contains(operation.id)
    }

    /// Asks what is not known. Runs at the end of each turn with a connection.
    static func ask(_ skeleton: inout TreeSkeleton) {
        guard skeleton.messages.identity != nil else { return }
        var wanted = Set(skeleton.messages.awaiting.keys).union(skeleton.branches.waiting.keys)
        wanted.formUnion(ShareChanges.questions(skeleton))
        for id in skeleton.queue.copies {
            if let operation = skeleton.queue[id], operation.state == .waiting, let receiver = operation.receiver {
                wanted.insert(KeyQuestion(receiver))
            }
        }
        for question in wanted where skeleton.messages.mayAsk(question) {
            skeleton.messages.ask(question)
            let isOwn = KeyRenewal.isOwn(question, skeleton)
            skeleton.actions.append(.message(isOwn ? .renewKeys(question) : .lookUpKeys(question)))
        }
    }

    /// The keys of another account were looked up, or cannot be.
    static func answered(
        _ question: KeyQuestion, _ answer: KeyAnswer, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        switch answer {
        case .found(let keys, let head):
            if let head, head.size >= skeleton.messages.head?.size ?? 0 { skeleton.messages.head = head }
            let isAnswer =
                keys.user.utf8.elementsEqual(question.user.text.utf8)
                && question.keyID.map { $0.utf8.elementsEqual(keys.id.utf8) } ?? true
            skeleton.messages.answer(question, isAnswer ? keys : nil)
            if !isAnswer { try failed(question, .absent, &skeleton) }
        case .failed(let trouble):
            skeleton.messages.answer(question, nil)
            try failed(question, trouble, &skeleton)
        }
    }

    private static func failed(
        _ question: KeyQuestion, _ trouble: KeyTrouble, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        skeleton.messages.pauses[question] = skeleton.time.monotonic + MessageState.pause
        if question.keyID != nil {
            guard trouble == .absent else { return }
            skeleton.messages.setAbsent(question)
            return try Letters.refuse(question, &skeleton)
        }
        for id in skeleton.queue.copies.union(skeleton.queue.shares).sorted() {
            guard var operation = skeleton.queue[id], operation.state == .waiting,
                operation.receiver == question.user
                    || ShareChanges.accounts(operation, skeleton).contains(question.user)
            else { continue }
            operation.trouble = trouble.rawValue
            if !trouble.isPassing { operation.state = .held(.keys) }
            try skeleton.write(operation)
            if trouble.isPassing { continue }
            let error = TreeError(.keys, trouble.detail, reason: trouble.rawValue)
            skeleton.events.append(.operationFailed(id, operation.node, error))
        }
    }
}
