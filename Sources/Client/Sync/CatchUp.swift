package import ThicketProtocol

/// Finds the end of the answer to `cv`: it may come in several messages, and none of them is marked as the last.
///
/// The client asks again from the position that it has reached. An empty answer means that nothing is left. So does a
/// message that begins at the same position as the first one received after the first question: answers arrive in
/// order, so the message answers a repeated question, and everything before it has arrived; its repeated content is
/// known and ignored. Only the first `questionsMax` messages lead to questions, so that an answer in many parts is not
/// repeated once for each part.
package struct CatchUp: Sendable, Equatable {
    private var questions = 0
    /// The position at which the first message after the first question began.
    private var firstReceived: ChangeVersion?

    private static let questionsMax = 2

    package enum Verdict {
        case wait
        case ask
        case complete
    }

    package init() {}

    /// - Parameters:
    ///   - first: position of the message's first change.
    ///   - isAnswer: false when the message may be an early acknowledgement, which is not part of the answer.
    package mutating func received(first: ChangeVersion?, isAnswer: Bool) -> Verdict {
        if questions > 0, isAnswer, let first {
            if firstReceived == first { return .complete }
            if firstReceived == nil { firstReceived = first }
        }
        guard questions < Self.questionsMax else { return .wait }
        questions += 1
        return .ask
    }
}
