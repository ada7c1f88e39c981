import pickle

from kernelweave.errors import ErrorCode, KernelweaveError


def test_an_error_is_its_sentence_and_its_code():
    error = KernelweaveError("'in.csv' is empty.", ErrorCode.EMPTY)
    assert (str(error), error.code) == ("'in.csv' is empty.", ErrorCode.EMPTY)
    assert isinstance(error, ValueError)  # what scikit-learn's estimators raise for data that they refuse


def test_every_code_is_described_by_a_sentence_of_its_own():
    sentences = [code.value for code in ErrorCode]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in sentences)


def test_an_error_of_another_process_arrives_whole():
    error = pickle.loads(pickle.dumps(KernelweaveError("'in.csv' is empty.", ErrorCode.EMPTY)))
    assert (type(error), str(error), error.code) == (KernelweaveError, "'in.csv' is empty.", ErrorCode.EMPTY)
