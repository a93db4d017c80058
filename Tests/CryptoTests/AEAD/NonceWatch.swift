import Testing
import ThicketCrypto

/// For a suite or a test: what is sealed inside is recorded, and no key sees a nonce twice for different bytes.
struct NonceWatch: SuiteTrait, TestTrait, TestScoping {
    let isRecursive: Bool = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let recorder: SealRecorder = .init()
        try await SealRecorder.$current.withValue(recorder) { try await function() }
        #expect(recorder.reuses.isEmpty, "a nonce was used twice")
        #expect(!recorder.isFull, "more was sealed than is recorded")
    }
}

extension Trait where Self == NonceWatch {
    /// No key sees a nonce twice for different bytes.
    static var nonceWatch: Self { NonceWatch() }
}
