#if DEBUG
    public import Testing
    import ThicketCrypto

    /// For a suite or a test: the seals of each of its cases are recorded apart from the run, and no key may use a
    /// nonce twice for different bytes in them. Where keys are fixed and nonces come from a seed, two cases may repeat
    /// a pair; one case must not.
    public struct NonceWatch: SuiteTrait, TestTrait, TestScoping {
        public let isRecursive = true

        public func provideScope(
            for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
        ) async throws {
            let recorder = SealRecorder()
            try await SealRecorder.$current.withValue(recorder) { try await function() }
            #expect(recorder.reuses.isEmpty, "a nonce was used twice")
            #expect(!recorder.isFull, "more was sealed than is recorded")
        }
    }

    /// For a suite or a test that sets keys and nonces itself, again and again: its seals are not checked.
    public struct NoncesGiven: SuiteTrait, TestTrait, TestScoping {
        public let isRecursive = true

        public func provideScope(
            for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
        ) async throws {
            try await SealRecorder.$current.withValue(SealRecorder()) { try await function() }
        }
    }

    extension Trait where Self == NonceWatch {
        /// No key uses a nonce twice for different bytes.
        public static var nonceWatch: Self { NonceWatch() }
    }

    extension Trait where Self == NoncesGiven {
        /// Keys and nonces are given by the test.
        public static var noncesGiven: Self { NoncesGiven() }
    }
#endif
