# SPDX-License-Identifier: Apache-2.0
# Standard workloads, installed with the command.
suites += \
	%D%/attention.csv \
	%D%/batched.csv \
	%D%/decode.csv \
	%D%/cross_entropy.csv \
	%D%/deepbench_conv.csv \
	%D%/deepbench_gemm.csv \
	%D%/epilogues.csv \
	%D%/llama31_matmul.csv \
	%D%/mixed.csv \
	%D%/mobilenet.csv \
	%D%/resnet50_network.csv \
	%D%/resnet50_v1_5_conv.csv \
	%D%/softmax_rows.csv \
	%D%/squares.csv \
	%D%/unet3d.csv \
	%D%/wavenet.csv
